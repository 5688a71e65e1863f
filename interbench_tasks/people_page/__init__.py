"""The local web page (and the terminal) at which people answer what lies on a desk."""

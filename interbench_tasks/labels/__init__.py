"""People's labels on stored replies: what is asked, which items are drawn, what people said, and what follows of it."""

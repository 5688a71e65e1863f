"""What a run will take, before it is paid for: calls, tokens and money of each role, each as a range."""

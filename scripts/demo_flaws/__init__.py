"""The items of `mmpcbench_demo`: scenes, what can be wrong with them, and pictures that are made worse."""

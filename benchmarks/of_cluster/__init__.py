"""What the benchmark `cluster` runs in its hosts. It must never measure anything."""

"""Programs whose people are divided into partitions; see `restive.desk.partitions.selection`."""

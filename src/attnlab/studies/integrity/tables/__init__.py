"""Result tables: cells, and how a CSV file is read as one."""

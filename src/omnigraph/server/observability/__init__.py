"""What the server reports about itself."""

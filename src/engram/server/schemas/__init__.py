"""What requests and answers look like: the types that the published OpenAPI is made of."""

"""OpenAI's chat protocol: the client, the model, and answers that are mended before they are read."""

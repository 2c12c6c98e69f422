"""Rules for rows and properties: translation to conditions, decisions, explanations."""

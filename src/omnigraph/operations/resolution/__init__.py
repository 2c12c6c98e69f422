"""Entity resolution: `unify` as a mutation, candidates, their scores and clusters."""

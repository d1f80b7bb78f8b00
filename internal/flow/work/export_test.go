package work

// Waiting is how many records that came one by one wait for a transaction.
func (d *Service) Waiting() int { return d.calls.Len() }

package config

import "os"

// CheckInvariants tells whether the machine verifies every invariant after
// every step (BERTH_CHECK=1). All tests set it. The check is slow, and a breach
// panics.
func CheckInvariants() bool { return os.Getenv("BERTH_CHECK") == "1" }

package config

import "os"

// CheckInvariants tells whether the machine is to verify every invariant after
// every step (BERTH_CHECK=1), as all tests have it. It is slow, and a breach
// panics.
func CheckInvariants() bool { return os.Getenv("BERTH_CHECK") == "1" }

// Package berth tests the rules of the code: which way imports point, and what
// core may not use. The scheduler itself begins at core/machine, which decides,
// and edge/loop, which acts. See docs/overview.md.
package berth

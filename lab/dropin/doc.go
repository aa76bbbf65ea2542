// Package dropin lists what kube-scheduler shows to its users, and what Berth
// does with each of these things: one list a file in testdata, of which
// docs/drop-in.md has what differs. The lists come from kube-scheduler itself: its
// flags, the fields of its configuration, its metrics and gates from the code that is
// linked, its log lines and events from its source.
//
//	go test ./dropin -update
package dropin

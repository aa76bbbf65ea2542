// Package decision is the record of one scheduling attempt, as data: which
// plugin rejected which nodes for which reason, how the other nodes scored,
// which node was chosen and why. Messages, events, metrics and tools read the
// record. Nothing here formats text; core/explain does.
package decision

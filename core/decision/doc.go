// Package decision is the record of one scheduling attempt, as data: which
// nodes were rejected by which plugin for which reason, what the others
// scored, what was chosen and why. Messages, events, metrics and tools read
// it; nothing here formats text (core/explain does).
package decision

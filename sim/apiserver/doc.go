// Package apiserver is an API server in memory, as far as a scheduler and what
// surrounds it can tell: one history of resource versions, lists in pages,
// watches with bookmarks, which may lag by kind, compaction, conflicts,
// preconditions, the binding and status subresources, and a backup that can be
// restored. It speaks HTTP in JSON and protobuf, so that client-go talks to it
// as to any other. It knows no faults: package fault stands before it.
package apiserver

// Package chaos runs whole daemons, several replicas of them, over an API server
// in memory under a virtual clock, and has a seed play their enemy: lost
// requests and replies, hangs, errors, watches that freeze or end, stale lists,
// crashes, stops, a restored backup. After each change it checks what must
// always hold, and after the faults have healed that the cluster comes to rest
// as it should. A run is a story in the language of package scenario, with
// directives for faults; a story that fails is cut down to what it needs.
package chaos

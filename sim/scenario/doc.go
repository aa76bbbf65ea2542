// Package scenario reads and plays stories. A story is a text file
// (scenarios/*.txt) that sets up a cluster, lets things happen on a virtual
// clock, and states what must hold. scenarios/README.md describes the language.
package scenario

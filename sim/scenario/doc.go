// Package scenario reads and plays stories: text files (scenarios/*.txt) that
// set up a cluster, let things happen on a virtual clock and say what the
// scheduler is expected to do. scenarios/README.md describes the language.
package scenario

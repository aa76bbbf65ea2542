// Package api serves what the daemon knows of pods and nodes under /berth/v1/: its records, the
// pods that wait, sizes and rates of the queue and their history, the nodes by column, a stream
// of what happens, and why a pod waits. It only reads. Answers are JSON of the version berth.dev/v1alpha1;
// docs/records.md describes them.
//
// What needs the machine is copied on the loop's goroutine, as pointers to objects that
// nobody changes, and worked on elsewhere.
package api

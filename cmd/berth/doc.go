// Command berth is the tool for people: it says what a scheduler would do with
// a cluster, and why. Installed as kubectl-berth it is a plugin of kubectl.
package main

// Package nodeaffinity keeps pods on nodes that their node selector and required
// node affinity admit, and prefers nodes by their preferred terms. Arguments
// may add an affinity that holds for all pods of a profile.
package nodeaffinity

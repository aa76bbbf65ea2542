// Package why answers why a pod waits, or why it is where it is, and what would
// change that. An answer is data first (Answer, whose JSON is a contract with
// scripts) and text last. It comes from a machine that knows the cluster, which is
// asked and changes nothing, so that an answer is never a guess.
package why

// Package explain turns a decision into text: the message of the PodScheduled
// condition and the notes of events. The words are kube-scheduler's, to
// the letter, because people search for them and tools match them. Every
// function here is a pure function of a decision.
package explain

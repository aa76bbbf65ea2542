// Package breaks checks that tests find faults. It holds lists of planted faults:
// lines of Berth, and the changed lines. Those of breaks.txt name the mixes of
// generated worlds in which conform must disagree with kube-scheduler; those of
// daemon.txt have to make a seed of the simulation of whole schedulers
// (sim/chaos) fail. The go command's overlay builds each fault into a program of
// its own, which leaves the tree as it is. That program runs conform, or the
// simulation.
package breaks

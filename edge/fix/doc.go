// Package fix looks for the smallest changes that would have a pending pod placed.
// Nothing is guessed: each fix is applied to a copy of the objects, the same
// machine decides again, and every part without which the pod is placed all the
// same is left out.
package fix

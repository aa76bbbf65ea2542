// Package group keeps which pods belong to which pod group, and which of these are placed. A
// pod is known from when the API shows it until it is gone. The table says when one is placed
// or taken off its node, for good or as a try; so the counts are right at any moment, also in
// the middle of a pod group's cycle, and what undoes a placement undoes them.
package group

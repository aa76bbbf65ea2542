// Package match holds the questions that pods ask about nodes (node
// selectors, preferred terms, tolerations) and about other pods (terms of pod
// affinity, spread constraints), compiled once and asked often.
// Each compiled value carries a Key: two values with the same key give the
// same answer to every question.
package match

// Package match holds the questions that pods ask about nodes (node
// selectors, preferred terms, tolerations), compiled once and asked often.
// Each compiled value carries a Key: two values with the same key give the
// same answer to every question.
package match

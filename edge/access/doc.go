// Package access says what the user of a request may see. Whoever may get a path sees all
// of its answer. Whoever may not, and may get the pod that the question is about, sees the
// part of the answer that names no pod of a namespace whose pods he may not list. The
// authorizer answers each question; it asks the API server and keeps the answers for some
// seconds.
package access

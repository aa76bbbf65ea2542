// Package manifest reads Kubernetes objects from files, folders and standard
// input, as strictly as the API server would: an unknown field, a duplicate
// object or a negative quantity is an error that names file, document, object
// and field. What it hands out has the API server's defaults.
package manifest

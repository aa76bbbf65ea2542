// Package manifest reads Kubernetes objects from files, folders and standard
// input, as strictly as the API server would: a duplicate object or a
// negative quantity is an error that names file, document, object and field.
// A field that is not known is one, too, or is left out with a notice. What it hands out has the API server's defaults.
package manifest

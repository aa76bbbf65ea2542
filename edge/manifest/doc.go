// Package manifest reads Kubernetes objects from files, directories and
// standard input, as strictly as the API server. A duplicate object or a
// negative quantity is an error that names file, document, object and field. An
// unknown field is an error in strict mode; otherwise it is left out and a
// notice names it. The objects that come out have the API server's defaults, and new
// pods have passed admission.
package manifest

// Package features names the feature gates of Kubernetes v1.36 that a scheduler has to do with,
// their stages, their defaults and which needs which. --feature-gates sets them, through the
// library that kube-scheduler uses, so that spelling and complaints are the same.
package features

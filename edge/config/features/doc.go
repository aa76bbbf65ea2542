// Package features holds the feature gates of Kubernetes v1.36: all of them by stage and default,
// so that a flag which a whole cluster shares is accepted, and by name those that the scheduler asks
// for, with what each of these needs. --feature-gates sets them, through the library that
// kube-scheduler uses, so that spelling and complaints are the same.
package features

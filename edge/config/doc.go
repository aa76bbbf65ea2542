// Package config reads the scheduler's configuration file, a
// KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1, as
// kube-scheduler reads it. Reading is strict: an unknown or repeated
// field is an error. Fields that the file leaves out get kube-scheduler's defaults. All
// errors are reported at once, by field.
//
// The result is the published v1 type with every field set. Every profile holds
// its whole set of plugins, and the arguments of the in-tree plugins are
// decoded. Feature gates decide which defaults apply and which fields are
// allowed (see features).
package config

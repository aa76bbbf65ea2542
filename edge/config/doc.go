// Package config reads the scheduler's configuration file: KubeSchedulerConfiguration of
// kubescheduler.config.k8s.io/v1, as kube-scheduler v1.36 reads it. Reading is strict (an unknown
// or repeated field is an error), what the file leaves out gets v1.36's defaults, and everything
// that is wrong is reported at once, by field. What comes out is the published v1 type with no
// field left open: every default is filled in, every profile holds its whole set of plugins, and
// the arguments of the in-tree plugins are decoded. Which defaults apply, and which fields are
// allowed, depends on the feature gates (see features).
package config

// Package trace shows attempts to schedule a pod as OpenTelemetry spans: an attempt
// from the queue to the reply to the binding, in it the scheduling cycle by extension
// point and plugin, and the binding cycle by what was sent. Which attempts are shown is
// the sampler's choice; the others cost one look at it. Without tracing there is no
// Tracer.
package trace

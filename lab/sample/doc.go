// Package sample is the workload that a new lab is shown with: several
// Deployments and a Job, ten pods a node, whose outcome is known beforehand:
// nearly all of them fit whatever the scheduler's taste, and a few cannot.
// Watch follows their placement and tells when all that can be placed is.
package sample

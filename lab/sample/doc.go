// Package sample is the workload of `berth-lab up --sample`: several
// Deployments and a Job, with ten pods per node. The outcome is known: nearly
// all pods fit with any scheduler, and a few cannot fit. Watch follows the
// placement and reports when all pods that fit are placed.
package sample

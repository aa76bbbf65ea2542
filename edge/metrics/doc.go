// Package metrics counts and times what the scheduler does, under the names and
// with the labels that kube-scheduler uses, so that dashboards and alerts
// go on working. It watches the loop's steps; what the machine keeps count of
// itself is read when somebody asks. Metrics of Berth's own begin with berth_.
package metrics

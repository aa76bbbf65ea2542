package shadow

import "github.com/berth-scheduler/berth/edge/config"

// sampleSize is after how many feasible nodes kube-scheduler stops to look for
// more, in a cluster of that many nodes (percentageOfNodesToScore).
func sampleSize(c *config.Config, profile string, nodes int) int {
	const least, leastPercent = 100, 5
	percent := 0
	if c.PercentageOfNodesToScore != nil {
		percent = int(*c.PercentageOfNodesToScore)
	}
	for i := range c.Profiles {
		if p := &c.Profiles[i]; p.PercentageOfNodesToScore != nil && p.SchedulerName != nil && *p.SchedulerName == profile {
			percent = int(*p.PercentageOfNodesToScore)
		}
	}
	switch {
	case nodes < least:
		return nodes
	case percent == 0:
		percent = max(50-nodes/125, leastPercent)
	}
	return max(nodes*percent/100, least)
}

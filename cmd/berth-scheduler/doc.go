// Command berth-scheduler is the scheduler as a daemon. It takes
// kube-scheduler's flags and configuration file and puts the rooms of the house
// together: the machine, the loop that feeds it, the watches and the hands, the
// lease and the endpoint.
package main

// Command berth-scheduler is the scheduler as a daemon. It takes
// kube-scheduler's flags and configuration file. Package scheduler is all of
// it; a scheduler with plugins of your own is a main like this one with options.
package main

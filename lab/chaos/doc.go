// Package chaos runs replicas of Berth on a real control plane under a seeded
// enemy, and checks the history of what they did.
//
// Each replica talks to the API server through a proxy of its own. The enemy
// kills, stops and suspends replicas, restarts and restores the API server and
// etcd, and has the proxies lose, delay, refuse and swallow. Meanwhile pods and
// nodes come and go on nodes that are full, so that room that is given away
// twice shows at once.
//
//	workload ---> API server <--- proxy 0 <--- replica 0
//	                  ^      <--- proxy 1 <--- replica 1
//	history  <--------+               |
//	   ^------------------------------+   requests of each replica
package chaos

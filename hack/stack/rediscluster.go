package stack

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisCluster is a Redis Cluster of three primaries with a replica each, with a password and certificates.
type RedisCluster struct {
	Nodes []*Redis // the first three are primaries at first
	TLS   *RedisTLS

	ids []string // the nodes', in their order
}

const redisSlots = 16384

// StartRedisCluster returns once all slots are served and all replicas follow. What was started is there
// also when an error comes with it.
func StartRedisCluster(ctx context.Context, set RedisSet) (*RedisCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, redisSetStartsWithin)
	defer cancel()
	c := &RedisCluster{}
	var err error
	if c.TLS, err = newRedisTLS(filepath.Join(set.Dir, "tls")); err != nil {
		return c, err
	}
	buses := make([]int, 6)
	for i := range buses {
		if buses[i], err = c.startNode(ctx, set, i); err != nil {
			return c, err
		}
	}
	if err := c.meet(ctx, buses); err != nil {
		return c, err
	}
	for i, node := range c.Nodes[:3] {
		if _, err := node.do(ctx, fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*redisSlots/3, (i+1)*redisSlots/3-1)); err != nil {
			return c, err
		}
	}
	if err := c.await(ctx, "CLUSTER INFO", "cluster_known_nodes:6", "cluster_state:ok"); err != nil {
		return c, err
	}
	for i, node := range c.Nodes[3:] {
		if err := retry(ctx, func(ctx context.Context) error { _, err := node.do(ctx, "CLUSTER REPLICATE "+c.ids[i]); return err }); err != nil {
			return c, err
		}
	}
	for _, node := range c.Nodes[3:] {
		if err := node.Await(ctx, node.replicates); err != nil {
			return c, err
		}
	}
	// Who would vote knows who follows whom.
	for i, id := range c.ids[:3] {
		if err := c.await(ctx, "CLUSTER REPLICAS "+id, c.ids[3+i]); err != nil {
			return c, err
		}
	}
	return c, nil
}

// startNode starts a node, which knows no other yet.
func (c *RedisCluster) startNode(ctx context.Context, set RedisSet, i int) (bus int, err error) {
	o, err := set.options(ctx, c.TLS, fmt.Sprintf("node-%d", i))
	if err != nil {
		return 0, err
	}
	if bus, err = FreePort(ctx); err != nil {
		return 0, err
	}
	o.Settings = append(o.Settings, "cluster-enabled yes", fmt.Sprintf("cluster-port %d", bus), "cluster-node-timeout 4000", "tls-cluster yes")
	node, err := StartRedis(ctx, o)
	if err != nil {
		return 0, err
	}
	c.Nodes = append(c.Nodes, node)
	id, err := node.do(ctx, "CLUSTER MYID")
	c.ids = append(c.ids, fmt.Sprint(id))
	return bus, err
}

// meet has the first node meet the others. A meeting that takes longer than the nodes' timeout is given up by Redis, so it is
// asked for until all know each other.
func (c *RedisCluster) meet(ctx context.Context, buses []int) error {
	for {
		for i, node := range c.Nodes[1:] {
			if _, err := c.Nodes[0].do(ctx, fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", node.options.Port, buses[1+i])); err != nil {
				return err
			}
		}
		met, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := c.await(met, "CLUSTER INFO", "cluster_known_nodes:6")
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// await waits until all nodes say so.
func (c *RedisCluster) await(ctx context.Context, command string, parts ...string) error {
	for _, node := range c.Nodes {
		if err := node.Await(ctx, func(ctx context.Context) error { return node.says(ctx, command, parts...) }); err != nil {
			return err
		}
	}
	return nil
}

// Slot is that of a key.
func (c *RedisCluster) Slot(ctx context.Context, key string) (slot int64, err error) {
	answer, err := c.Nodes[0].do(ctx, "CLUSTER KEYSLOT "+key)
	if err != nil {
		return 0, err
	}
	return answer.(int64), nil
}

// Owner is the index of the primary that serves a slot, as the node with the index at sees it.
func (c *RedisCluster) Owner(ctx context.Context, slot int64, at int) (int, error) {
	client := redis.NewClient(c.Nodes[at].clientOptions())
	defer func() { _ = client.Close() }()
	shards, err := client.ClusterShards(ctx).Result()
	if err != nil {
		return 0, err
	}
	for _, shard := range shards {
		if !slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool { return r.Start <= slot && slot <= r.End }) {
			continue
		}
		for _, n := range shard.Nodes {
			if i := slices.Index(c.ids, n.ID); i >= 0 && n.Role == "master" {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("nobody serves slot %d", slot)
}

// MoveSlot moves a slot with its keys from one primary to another, as redis-cli --cluster reshard does.
func (c *RedisCluster) MoveSlot(ctx context.Context, slot int64, from, to int) error {
	source, target := c.Nodes[from], c.Nodes[to]
	if _, err := target.do(ctx, fmt.Sprintf("CLUSTER SETSLOT %d IMPORTING %s", slot, c.ids[from])); err != nil {
		return err
	}
	if _, err := source.do(ctx, fmt.Sprintf("CLUSTER SETSLOT %d MIGRATING %s", slot, c.ids[to])); err != nil {
		return err
	}
	for {
		answer, err := source.do(ctx, fmt.Sprintf("CLUSTER GETKEYSINSLOT %d 100", slot))
		if err != nil {
			return err
		}
		keys := answer.([]any)
		if len(keys) == 0 {
			break
		}
		args := append([]any{"", 0, 5000, "AUTH", redisPassword, "KEYS"}, keys...) // "": several keys
		if _, err := source.do(ctx, fmt.Sprintf("MIGRATE 127.0.0.1 %d", target.options.Port), args...); err != nil {
			return err
		}
	}
	for _, node := range []*Redis{target, source} {
		if _, err := node.do(ctx, fmt.Sprintf("CLUSTER SETSLOT %d NODE %s", slot, c.ids[to])); err != nil {
			return err
		}
	}
	return nil
}

// Environment is the programs'.
func (c *RedisCluster) Environment() []string {
	return c.TLS.environment(redisURL(c.Nodes[0].options, "+cluster", c.Nodes[0].Address(), c.Nodes[1].Address()))
}

// Passwords are what no log may hold.
func (c *RedisCluster) Passwords() []string { return []string{redisPassword} }

// Stop ends all that run.
func (c *RedisCluster) Stop() error { return stopAll(c.Nodes) }

// AwaitNewOwner waits until the nodes agree that somebody else than gone serves the slot.
func (c *RedisCluster) AwaitNewOwner(ctx context.Context, slot int64, gone int) error {
	ctx, cancel := context.WithTimeout(ctx, redisSetStartsWithin)
	defer cancel()
	for at, node := range c.Nodes {
		if at == gone {
			continue
		}
		err := node.Await(ctx, func(ctx context.Context) error {
			owner, err := c.Owner(ctx, slot, at)
			if err == nil && owner == gone {
				err = fmt.Errorf("node %d still serves slot %d", gone, slot)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

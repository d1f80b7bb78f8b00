package main

import "context"

// switches holds that URLs that are never well are off after exactly fifty failures, or not yet there.
func (c *checker) switches(ctx context.Context) error {
	bad, err := c.rows(ctx, `
		SELECT format('%s: on: %s, %s failures in a row, %s attempts: %s', e.url, e.switched_on, h.consecutive_failures, count(a.*),
		              string_agg(a.outcome || ' ' || a.cause || ' ' || coalesce(a.response_status, 0) || ' in ' || a.duration_us / 1000 || ' ms', ', ' ORDER BY a.started_at DESC) FILTER (WHERE a.outcome = 'delivered'))
		FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id LEFT JOIN webhook_journal a ON a.endpoint_id = e.id AND a.outcome IS NOT NULL
		WHERE e.url NOT LIKE '%/healthy' AND e.url NOT LIKE '%/flaky' AND e.url NOT LIKE '%hooks.idle.org%' GROUP BY e.id, h.endpoint_id
		HAVING NOT (NOT e.switched_on AND h.consecutive_failures = 50 AND count(a.*) = 50 OR e.switched_on AND h.consecutive_failures < 50 AND count(a.*) = h.consecutive_failures)`)
	for _, line := range bad {
		c.report.find("%s", line)
	}
	var off int
	if err == nil {
		err = c.db.QueryRow(ctx, `SELECT count(*) FROM webhook_endpoints WHERE NOT switched_on`).Scan(&off)
	}
	c.report.checked("URLs switched off, each at its fiftieth failure", off)
	return err
}

package org.apache.hudi.client.transaction.lock;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.common.util.ReflectionUtils;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * The gate's lock under the name of Hudi's own provider, first on the class path: the transaction strategy of early
 * conflict detection takes a lock for each file group, and accepts the provider of this name alone. As of Hudi's, the lock
 * is that of the key in its configuration.
 */
public class ZookeeperBasedLockProvider implements LockProvider<String> {
    private final LockProvider<String> gate;

    @SuppressWarnings("unchecked")
    public ZookeeperBasedLockProvider(LockConfiguration lock, StorageConfiguration<?> storage) {
        Class<?>[] types = {LockConfiguration.class, StorageConfiguration.class};
        gate = (LockProvider<String>) ReflectionUtils.loadClass("HudiJavaWriter$GateLock", types, lock, storage);
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        return gate.tryLock(time, unit);
    }

    @Override
    public void unlock() {
        gate.unlock();
    }

    @Override
    public String getLock() {
        return gate.getLock();
    }

    @Override
    public Condition newCondition() {
        return gate.newCondition();
    }
}

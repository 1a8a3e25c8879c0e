import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.com.beust.jcommander.JCommander;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.timeline.service.TimelineService;

/**
 * Starts Hudi 0.15.0's timeline service, with the flags given, on the storage that the first argument names. Its own
 * main knows no storage but file:///; this gives it the table's, as EmbeddedTimelineService does in a driver.
 */
public class StorageTimelineServiceLauncher {
    public static void main(String[] arguments) throws Exception {
        String[] flags = java.util.Arrays.copyOfRange(arguments, 1, arguments.length);
        var config = new TimelineService.Config();
        new JCommander(config, null, flags);
        var storage = HadoopFSUtils.getStorageConf(HadoopFSUtils.prepareHadoopConf(new Configuration()));
        new TimelineService(
            new HoodieLocalEngineContext(storage),
            new Configuration(),
            config,
            HoodieStorageUtils.getStorage(arguments[0], storage),
            TimelineService.buildFileSystemViewManager(config, HadoopFSUtils.getStorageConfWithCopy(new Configuration()))
        ).run();
        Thread.currentThread().join();
    }
}

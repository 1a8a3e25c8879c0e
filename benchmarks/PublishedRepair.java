import java.util.List;
import java.util.stream.Collectors;

import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.metadata.FileSystemBackedTableMetadata;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;
import org.apache.hudi.table.repair.RepairUtils;

/** Prints the data files that Hudi's repair tool would remove from each table, as its dry run finds them. */
public class PublishedRepair {
    public static void main(String[] tables) throws Exception {
        for (String table : tables) {
            try {
                var storage = new HadoopStorageConfiguration(new Configuration());
                var meta = HoodieTableMetaClient.builder().setConf(storage).setBasePath(table).setLoadActiveTimelineOnLoad(true).build();
                var listed = new FileSystemBackedTableMetadata(new HoodieLocalEngineContext(storage), meta.getTableConfig(), meta.getStorage(), table);
                List<StoragePath> paths = new java.util.ArrayList<>();
                for (String partition : listed.getAllPartitionPaths()) {
                    FSUtils.getAllDataFilesInPartition(meta.getStorage(), FSUtils.constructAbsolutePath(table, partition))
                        .forEach(each -> paths.add(each.getPath()));
                }
                var archived = meta.getArchivedTimeline();
                archived.loadCompletedInstantDetailsInMemory();
                var found = RepairUtils.tagInstantsOfBaseAndLogFiles(table, paths).entrySet().stream()
                    .flatMap(each -> RepairUtils.findInstantFilesToRemove(
                        each.getKey(), each.getValue(), meta.getActiveTimeline(), archived).stream())
                    .sorted().collect(Collectors.toList());
                System.out.println("FOUND " + table + " " + paths.size() + " " + String.join(",", found));
            } catch (Throwable error) {
                System.out.println("ERROR " + table + " " + error.toString().split("\n")[0]);
            }
        }
    }
}
